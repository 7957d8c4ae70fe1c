"""The ways of messages, as users read of them; by the names that records have."""

from mpress import links

WAYS = {"whole": "MPI", "chunks": "MPI, in chunks"}
NOTES = {
    "whole": "MPI has the message, or its frame; from GPUs that it does not know, host memory",
    "chunks": "MPI has the message piece by piece, while others are copied, encoded and decoded",
}
for _link in links.ALL:
    WAYS[_link.name] = _link.text
    NOTES[_link.name] = _link.note
    if _link.name == "peer":
        WAYS["direct"] = f"{_link.text}, zero copy"
        NOTES["direct"] = "read by the receiver's GPU where the program has it"
