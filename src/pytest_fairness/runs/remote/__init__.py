"""Asking on a machine that does not share the disk of the run: the worker asks, the controller keeps the book.

The two talk over the connection that pytest-xdist has opened between them anyway. The worker's
:class:`~.store.RemoteStore` has the methods of a store, each of which is a message; the controller's
:class:`~.service.Service` answers it with a store, an account and limits of the ordinary kind, opened in the worker's
name.
"""
