/** Turns what is seen of a binding from outside into answers that JSON can hold. */
import type { Health, OutsideView } from "@eventbus/core"
import type * as Answers from "../../Answers.ts"
import * as AnswersOf from "../answersOf.ts"

const { given, isoOf } = AnswersOf

export const summaryOf = ({ snapshot, view, failure }: OutsideView.OutsideBinding): Answers.BindingSummary => {
  const partitions = view?.partitions ?? []
  return {
    ...AnswersOf.summaryOf(snapshot, view?.deadLetters),
    ...given("lag", AnswersOf.lagOf(partitions)),
    ...given("retries", AnswersOf.retriesOf(partitions)),
    partitions: partitions.length,
    outside: {
      ...given("asOf", view === undefined ? undefined : isoOf(view.asOfMillis)),
      ...given("members", view?.members),
      ...given("problem", failure?.error.message)
    }
  }
}

export const detailOf = (binding: OutsideView.OutsideBinding, health: Health.Health): Answers.BindingDetail => {
  const { snapshot, view, failure } = binding
  const detail = AnswersOf.detailOf(snapshot, health, undefined)
  return {
    ...detail,
    ...summaryOf(binding),
    problems: detail.problems.length > 0 || failure === undefined ? detail.problems : [failure.error.message],
    committed: (view?.partitions ?? []).map(({ committed, logEnd, lag, ...at }) => ({
      ...at,
      ...given("committed", committed === undefined ? undefined : String(committed)),
      logEnd: String(logEnd),
      lag: Number(lag)
    }))
  }
}
