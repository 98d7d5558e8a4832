"""Intake channels: each turns a payload into an `IntakeRequest`, or gives the reason why it is none.

All input is untrusted: it is read as data, never followed as an instruction. Of a request only its reference,
its address and a title are kept; its text stays where it is.
"""
