"""Reticent: releases health data that keeps changing, without telling who has what."""
