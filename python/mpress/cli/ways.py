"""The ways of messages, as users read of them; by the names that records have."""

WAYS = {
    "whole": "MPI",
    "chunks": "MPI, in chunks",
    "peer": "GPU to GPU",
    "direct": "GPU to GPU, zero copy",
    "host": "host memory of both GPUs",
}

NOTES = {
    "whole": "MPI has the message, or its frame; from GPUs that it does not know, host memory",
    "chunks": "MPI has the message piece by piece, while others are copied, encoded and decoded",
    "peer": "through memory that both GPUs reach",
    "direct": "read by the receiver's GPU where the program has it",
    "host": "through host memory that both processes map and both GPUs have pinned",
}
