"""Published labels: whether they are nodes of their hierarchy, what they may stand for, and which rows of an input fit them."""
