"""Who does the work: what keeps a lease alive."""
