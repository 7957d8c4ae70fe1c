"""Micro-benchmarks of messages between two ranks: `mpress bench latency`, `bandwidth` and
`bibandwidth`, in the manner of the OSU suite.

data     what the messages hold
jobs     starts the ranks, and sums up what they measured
worker   what each rank runs
arrival  whether what arrived is what was sent
loopback which transport the ranks took
memory   buffers of the host and of GPUs
nccl     the same messages through NCCL
"""
