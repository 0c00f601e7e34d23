"""What holds for all unit tests."""

from hypothesis import settings

settings.register_profile("house", deadline=None)  # no test asserts on time: a busy machine is no defect
settings.load_profile("house")
