"""Where asks come from: each channel turns a payload into an `Ask`, or says why it is none.

Everything that comes in here was written by somebody else. It is read, never obeyed; of a request only
its reference, its address and a title are kept, and its text stays where it is.
"""
