"""One settings model per kind of release, each in its own file."""

from reticent.policy.settings.evolving import EvolvingSettings
from reticent.policy.settings.inputs import FhirSettings, Hl7Settings, SqlSettings
from reticent.policy.settings.linked import LinkedSettings
from reticent.policy.settings.person import PersonSettings
from reticent.policy.settings.prior import PriorSettings
from reticent.policy.settings.series import SeriesSettings
from reticent.policy.settings.stream import StreamSettings
from reticent.policy.settings.table import TableSettings

__all__ = [
    "EvolvingSettings",
    "FhirSettings",
    "Hl7Settings",
    "LinkedSettings",
    "PersonSettings",
    "PriorSettings",
    "SeriesSettings",
    "SqlSettings",
    "StreamSettings",
    "TableSettings",
]
