"""The benchmark of neighbourhoods, `mpress bench iso`: iso_jobs starts the ranks, which run
iso_worker."""
