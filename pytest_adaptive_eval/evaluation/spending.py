"""Prices of a model, and budgets of an evaluation in tokens or money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.tables import EvalTable, PriceTable
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.models.caps import DEFAULT_TOKENS, REASONING_TOKENS
from pytest_adaptive_eval.records.parts import Costs, InterviewerRecord, Price
from pytest_adaptive_eval.text import money

#: Tokens that a price is for, characters of a token where none is counted, and prompts whose length is looked at.
MILLION, CHARACTERS, SAMPLE = 1_000_000, 4, 40


@dataclass(frozen=True, slots=True)
class Spending:
    """Cost of calls, and limits on what an interview may spend.

    Args:
        tokens: Most tokens, of prompts and answers together.
        money: Most money, in the price's currency.
        agents: Prices of the models that work for the run, by role: interviewer and judge. The budgets do not count
            them.
    """

    price: PriceTable | None = None
    tokens: int | None = None
    money: float | None = None
    agents: Mapping[str, PriceTable] = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        """Whether there is a budget besides that in items."""
        return self.tokens is not None or self.money is not None

    def cost(self, usage: Usage) -> float | None:
        """Return the money that calls cost; None without a price."""
        if self.price is None:
            return None
        return price_of(self.price, usage).money

    def cost_of(self, measures: Mapping[str, float]) -> float | None:
        """Return the money that one answer cost by its tokens; None without a price, or with one per hour."""
        if self.price is None or self.price.hour or "output_tokens" not in measures:
            return None
        prompt = int(measures.get("input_tokens", 0.0))
        return self.cost(Usage(prompt_tokens=prompt, completion_tokens=int(measures["output_tokens"])))

    def allows(self, spent: Usage, asked: int, following: int) -> bool:
        """Return whether `following` more questions fit into the budgets, if they cost what the `asked` ones did."""
        if not self.limited or not asked:
            return True
        growth = 1.0 + following / asked
        tokens = spent.prompt_tokens + spent.completion_tokens
        if self.tokens is not None and tokens * growth > self.tokens:
            return False
        return self.money is None or (self.cost(spent) or 0.0) * growth <= self.money

    def outlook(self, bank: ItemBank, questions: int, longest: int | None) -> str:
        """Return what the questions cost at most, before the interview; an empty text without price and budget."""
        if self.price is None and not self.limited:
            return ""
        step = max(1, len(bank) // SAMPLE)
        looked_at = bank.items[::step]
        characters = sum(len(item.prompt) for item in looked_at)
        characters += sum(len(str(message)) for item in looked_at for message in item.messages)
        prompts = round(questions * characters / len(looked_at) / CHARACTERS)
        answers = questions * (longest or DEFAULT_TOKENS)
        parts = [f"about {prompts:,} tokens of prompts for {questions} questions", f"answers of at most {answers:,}"]
        if longest is None:
            parts[-1] += (
                f" (max_tokens is not set: {DEFAULT_TOKENS:,} each are assumed, of a model that reasons "
                f"{REASONING_TOKENS:,})"
            )
        if self.price is not None:
            most = self.cost(Usage(prompt_tokens=prompts, completion_tokens=answers)) or 0.0
            if self.price.hour:
                hours = f" and {money(self.price.hour, self.price.currency)} per hour"
            else:
                hours = ""
            parts.append(f"{money(most, self.price.currency)} at most{hours}")
        if self.tokens is None:
            limits = []
        else:
            limits = [f"{self.tokens:,} tokens"]
        limits += [] if self.money is None or self.price is None else [money(self.money, self.price.currency)]
        if limits:
            parts.append(f"it ends before {' or '.join(limits)}")
        return ", ".join(parts)

    def costs(self, subject: Usage, account: InterviewerRecord | None, judge: Usage, size: int) -> Costs:
        """Return the costs for a record, relative to the FLOPs of asking the subject a bank of `size` if known.

        Args:
            account: That of an interviewer, with its calls and the FLOPs of the embeddings that it goes by.
        """
        account = account or InterviewerRecord()
        if account.interviewer is None:
            interviewer = Usage()
        else:
            interviewer = account.interviewer.usage
        roles = {"subject": subject, "interviewer": interviewer, "judge": judge}
        calls = {role: usage for role, usage in roles.items() if usage.calls}
        prices = self.agents if self.price is None else {**self.agents, "subject": self.price}
        costs = Costs(calls.get("subject"), calls.get("interviewer"), calls.get("judge"))
        costs.prices = {role: price_of(prices[role], usage) for role, usage in calls.items() if role in prices}
        if not subject.calls:
            return costs
        complete = interviewer.flops or not interviewer.calls  # a model on a server does not tell
        if subject.flops and complete and not judge.calls:
            whole = subject.flops / subject.calls * size
            costs.relative = (subject.flops + interviewer.flops + account.embedding_flops) / whole
        return costs


def price_of(table: PriceTable, usage: Usage) -> Price:
    """Return what calls cost."""
    tokens = table.prompt * usage.prompt_tokens + table.completion * usage.completion_tokens
    return Price(tokens / MILLION + table.hour * usage.seconds / 3600.0, table.currency)


def spending_of(table: EvalTable, stop: str) -> Spending:
    """Return the prices and budgets of an evaluation.

    Raises:
        ConfigError: A budget in money has no price, or the interview may not end by what answers cost.
    """
    tables = {"interviewer": table.interview, "judge": table.judge}
    agents = {}
    for role, agent in tables.items():
        if agent is not None and agent.price is not None:
            agents[role] = agent.price
    if table.price is None:
        return Spending(agents=agents)
    priced = any((table.price.prompt, table.price.completion, table.price.hour))
    spending = Spending(table.price if priced else None, table.price.most_tokens, table.price.most_money, agents)
    if spending.money is not None and not priced:
        raise ConfigError("price has most_money and no prices: add prompt = 0.15, completion = 0.6")
    if spending.limited and stop != "decision":
        raise ConfigError(
            "most_tokens and most_money end an interview by the length of answers, which only bets allow for: "
            "write stop = \"decision\" and the policy 'decide', or a budget in items"
        )
    return spending
