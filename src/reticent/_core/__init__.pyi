from . import random as random
from . import series as series
from . import table as table
