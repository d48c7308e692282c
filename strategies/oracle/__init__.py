"""The oracle: cases with certified derivatives, by which any library is graded.

`draws` makes inputs, `truth` certifies what follows from them, `records` writes both as text. `grader`
reads it and judges answers with NumPy alone; `adapters` ask one library each, in a process that
`asking` starts; `report` says what the judgements amount to.
"""
