"""Workers: run commands under leases, and keep the leases alive."""
