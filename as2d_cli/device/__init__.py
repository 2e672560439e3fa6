"""Other machines than this one: the runner that does the work there, and the way to it."""
