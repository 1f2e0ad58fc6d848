"""The explorer: a page on this machine to build, solve and try out boxes.

``document`` turns forests into what the page edits, ``workbench`` answers its questions with the
real engine, ``server`` lets nobody else ask.
"""

from .server import Server as Server
from .workbench import Workbench as Workbench
