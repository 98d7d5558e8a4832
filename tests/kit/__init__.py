"""What tests share: plain fakes for the clock, real stores, real repositories, real processes."""
