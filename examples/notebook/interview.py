"""The cells of `interview.ipynb` as a script."""

import json
from pathlib import Path

from pytest_adaptive_eval import CallableModel, interview

questions = [{"id": f"sum-{n}", "prompt": f"What is {n} + 8?", "answer": str(n + 8)} for n in range(200)]
Path("sums.jsonl").write_text("".join(json.dumps({**question, "grader": "numeric"}) + "\n" for question in questions))


def answer(prompt):
    number = int(prompt.split()[2])
    return str(number + 8 if number % 10 else number)  # one sum in ten is wrong


model = CallableModel(answer, "adder", checkpoint="v1")

result = interview("sums.jsonl", model, gates=[{"at_least": 0.7}], seed=1)
print(result)

print(result.passed, result.gates[0].verdict.outcome)
print(result.record.interviews[0].asked, "of 200 questions")
