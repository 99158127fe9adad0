"""tmp"""
draw=panels=None
