"""What crosses from one process to another: known keys only, never changed once made."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
