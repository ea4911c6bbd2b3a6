"""Training: from counts to a vocabulary, with a report.

plan        the size, the id layout and the vocabulary before the first merge
run         count, merge, resume: what `byteweld.train` and the command both call
cut         the result of the same run at a smaller size
extend      which vocabularies can learn further merges, and with which recipe
words       which words merges can make a token, and what to train on for that
checkpoint  what an interrupted run resumes from
report      Training and TrainingEvent; the report file next to a vocabulary
"""

from byteweld.training.report import Start, Stop, Training, TrainingEvent, load_report, report_path

__all__ = ["Start", "Stop", "Training", "TrainingEvent", "load_report", "report_path"]
