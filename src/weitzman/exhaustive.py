from .errors import WeitzmanError
class TooLarge(WeitzmanError, ValueError):
    def __init__(self, message: str, states: float) -> None:
        super().__init__(message); self.states = states
