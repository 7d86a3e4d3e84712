"""MACEval's evaluation network: interviewers, interviewees and a supervisor over tasks that lead to each other."""
