from . import evolving as evolving
from . import table as table
