"""Tools that answer questions: is my derivative right, where was the NaN born, what does the graph look like, where does the time go.

Each is imported when it is first used; see :func:`chainrule.verify`, :func:`chainrule.show`, :func:`chainrule.find_nan`, :class:`chainrule.profile`,
:func:`chainrule.summary` and :func:`chainrule.progress`.
"""
