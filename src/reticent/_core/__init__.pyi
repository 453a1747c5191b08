from . import table as table
