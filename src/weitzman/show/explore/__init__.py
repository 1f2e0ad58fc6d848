"""The explorer: a page on this machine on which boxes are built, solved and tried out.

``document`` turns forests into what the page edits, ``workbench`` answers its questions with the
real engine, ``server`` lets nobody else ask.
"""

from .server import Server as Server
from .workbench import Workbench as Workbench
