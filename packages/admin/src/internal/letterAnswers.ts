/**
 * Turns what the connector says of dead letters into answers that JSON can hold. Without `payload`, nothing in them quotes a record.
 */
import type { DeadLetterGroup, DeadLetterList, DeadLetterRecord, Rehearsal } from "@eventbus/core"
import { DeadLetterSelection, Route } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Answers from "../DeadLetterAnswers.ts"
import type { Payload } from "../Mask.ts"
import { given, isDate, isoOf, recordPositionOf } from "./answersOf.ts"
import { textOf } from "./masking.ts"
import { type Decoded, headersOf, type Parts, payloadOf } from "./payloadAnswers.ts"
import type { Kept } from "./rehearsals.ts"

const timeOf = <K extends string>(name: K, millis: number): { readonly [N in K]?: string } =>
  (isDate(millis) ? { [name]: isoOf(millis) } : {}) as { readonly [N in K]?: string }

/** The groups of dead letters. `payload`: with messages of errors. */
export const groupsOf = (
  { groups, other, foreign, unreadable, readMillis }: DeadLetterGroup.GroupReport,
  payload: Payload
): Answers.Groups => ({
  groups: groups.map((group) => groupOf(group, payload)),
  ...{ other, foreign, unreadable, read: isoOf(readMillis) }
})

const originOf = (from: DeadLetterRecord.DeadLetterRecord["originFrom"]): Answers.Summary["origin"] =>
  from === "none" ? "unknown" : from

const groupOf = (group: DeadLetterGroup.DeadLetterGroup, payload: Payload): Answers.Group => {
  const { fingerprint, exceptionClass, frame, message, count, states, discarded, cameBack } = group
  const origin = originOf(group.originFrom)
  const { waiting, exhausted, failed, "dealt-with": dealtWith } = states
  return {
    ...{ fingerprint, exceptionClass, origin, count, discarded, cameBack },
    ...given("originalTopic", origin === "unknown" ? undefined : group.originalTopic),
    ...given("sourceTopic", group.sourceTopic),
    ...given("frame", frame),
    ...given("message", textOf(payload, message)),
    states: { waiting, exhausted, failed, dealtWith },
    ...timeOf("first", group.firstMillis),
    ...timeOf("last", group.lastMillis),
    trend: group.trend,
    samples: group.samples.map(DeadLetterSelection.formatPosition)
  }
}

/** A page of dead letters. `payload`: with keys, messages of errors, and reasons in words. */
export const pageOf = ({ letters, next }: DeadLetterList.SummaryPage, payload: Payload): Answers.Page => ({
  letters: letters.map((letter) => summaryOf(letter, payload)),
  ...given("next", next)
})

const summaryOf = (letter: DeadLetterList.Summary, payload: Payload): Answers.Summary => {
  const { state, fingerprint, exceptionClass, totalAttempts, replayCount } = letter
  return {
    position: DeadLetterSelection.formatPosition(letter),
    ...given("sourceTopic", letter.sourceTopic),
    ...{ state, fingerprint, exceptionClass, ...originFieldsOf(letter), totalAttempts, replayCount },
    ...timeOf("deadLettered", letter.deadLetteredMillis),
    ...given("reason", letter.reason),
    ...given("owner", letter.owner),
    ...given("valueBytes", letter.valueBytes),
    ...given("unreadable", letter.unreadable?.detail),
    history: letter.history.map(eventOf),
    ...given("exceptionMessage", textOf(payload, letter.exceptionMessage)),
    ...given("detail", textOf(payload, letter.detail)),
    ...given("key", textOf(payload, letter.key))
  }
}

/** The place of a letter without an origin is its own, and would lead astray. */
const originFieldsOf = ({ originFrom, originalTopic, originalPartition, originalOffset }: DeadLetterList.Summary) =>
  originFrom === "none"
    ? { origin: originOf(originFrom) }
    : { origin: originOf(originFrom), originalTopic, originalPartition, originalOffset: String(originalOffset) }

const eventOf = ({ action, atMillis, runId, by, reason, copy }: DeadLetterList.LetterEvent): Answers.LetterEvent => ({
  action,
  ...timeOf("at", atMillis),
  ...given("run", runId),
  ...given("by", by),
  ...given("reason", reason),
  ...given("copy", copy === undefined ? undefined : recordPositionOf(copy))
})

/** One dead letter. `payload`: with key, value, headers and causes. */
export const letterOf = (
  { letter, state, unreadable, key, value, history }: DeadLetterList.DecodedDeadLetter,
  payload: Payload
): Answers.Letter => {
  const { record, lastExceptionClass, lastExceptionMessage, dltReason, dltDetail } = letter
  const summary = summaryOf(
    {
      ...{ partition: record.partition, offset: record.offset, state, fingerprint: letter.fingerprint },
      ...{ exceptionClass: lastExceptionClass, exceptionMessage: lastExceptionMessage },
      ...{ reason: dltReason, detail: dltDetail, deadLetteredMillis: letter.dltTimestamp },
      ...{ originFrom: letter.originFrom, originalTopic: letter.originalTopic },
      ...{ originalPartition: letter.originalPartition },
      ...{ originalOffset: letter.originalOffset, totalAttempts: letter.totalAttempts },
      ...{ replayCount: letter.replayCount, owner: letter.owner, valueBytes: letter.value?.length },
      key: letter.key === null ? undefined : new TextDecoder().decode(letter.key.subarray(0, 1_024)),
      ...{ history, ...given("unreadable", unreadable) }
    },
    payload
  )
  const tiers = letter.tierHistory.map(({ tier, exceptionClass, attempts }) => ({ tier, exceptionClass, attempts }))
  if (key === undefined || value === undefined) return { ...summary, tiers }
  return {
    ...given("cameBackFrom", letter.runId),
    ...{ ...summary, tiers, decodable: Result.isSuccess(key) && Result.isSuccess(value) },
    ...given("payload", payload === false ? undefined : payloadOf(partsOf(letter, key, value), payload))
  }
}

const partsOf = (letter: DeadLetterRecord.DeadLetterRecord, key: Decoded, value: Decoded): Parts => ({
  topic: letter.originalTopic,
  ...{ key: { bytes: letter.key, decoded: key }, value: { bytes: letter.value, decoded: value } },
  ...{ headers: headersOf(letter), causes: letter.cause }
})

export const rehearsalOf = ({ id, startedMillis, end }: Kept, payload: Payload): Answers.Rehearsal => {
  const begun = { id, started: isoOf(startedMillis) }
  if (end === undefined) return { ...begun, status: "running" }
  if (Exit.isSuccess(end.exit)) return { ...begun, status: "done", report: reportOf(end.exit.value, payload) }
  const error = Cause.squash(end.exit.cause)
  const isKnown = Predicate.hasProperty(error, "_tag")
  return {
    ...{ ...begun, status: "failed", error: isKnown ? String(error._tag) : "InternalError" },
    ...given("message", textOf(payload, isKnown && error instanceof Error ? error.message : undefined))
  }
}

/** The result of a rehearsal. `payload`: with messages of errors, and reasons in words. */
export const reportOf = (report: Rehearsal.Report, payload: Payload): Answers.RehearsalReport => {
  const { mode, complete, published, tookMillis } = report
  return {
    ...{ mode, complete, published, tookMillis },
    ...countsOf(report),
    groups: report.groups.map((group) => ({
      ...{ fingerprint: group.fingerprint, exceptionClass: group.exceptionClass },
      ...countsOf(group),
      failures: group.failures.map(({ exceptionClass, message, route, count }) => ({
        ...{ exceptionClass, count, route: routeText(route, payload) },
        ...given("message", textOf(payload, message))
      }))
    })),
    letters: report.letters.map((letter) => ({
      position: DeadLetterSelection.formatPosition(letter),
      fingerprint: letter.fingerprint,
      ...verdictOf(letter.verdict, payload)
    }))
  }
}

/** The reason of a dead letter may quote the record. */
const routeText = (route: Route.Route, payload: Payload): string =>
  Route.describe(route._tag === "DeadLetter" ? Route.deadLetter(textOf(payload, route.reason)) : route)

const countsOf = (counts: Rehearsal.Counts): Rehearsal.Counts => {
  const { selected, passes, decodes, undecodable, fails, timedOut, stays, skipped, exhausted } = counts
  return { selected, passes, decodes, undecodable, fails, timedOut, stays, skipped, exhausted }
}

const verdictOf = (
  verdict: Rehearsal.Verdict,
  payload: Payload
): Omit<Answers.LetterVerdict, "position" | "fingerprint"> => {
  const { _tag } = verdict
  switch (_tag) {
    case "Fails": {
      const { exceptionClass, message, route } = verdict
      const shown = { verdict: _tag, exceptionClass, route: routeText(route, payload) }
      return { ...shown, ...given("message", textOf(payload, message)) }
    }
    case "Undecodable": {
      const halves = (["key", "value"] as const).flatMap((half) => {
        const failure = verdict[half]
        return failure === undefined ? [] : [{ path: `${half}${failure.path}`, detail: failure.detail }]
      })
      const shown = { verdict: _tag, undecodable: halves.map(({ path }) => path) }
      return { ...shown, ...given("message", textOf(payload, halves.map(({ detail }) => detail).join("; "))) }
    }
    case "Stays":
      return { verdict: _tag, ...given("message", textOf(payload, verdict.reason)) }
    case "Skipped":
      return { verdict: _tag, because: verdict.because }
    default:
      return { verdict: _tag }
  }
}
