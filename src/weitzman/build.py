"""Builder"""
