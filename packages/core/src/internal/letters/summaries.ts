/**
 * Summaries of dead letters for lists, and the query that chooses among them. A summary holds no value.
 */
import type { Query, Summary } from "../../DeadLetterList.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as HeaderValues from "../record/headerValues.ts"
import type { StatedLetter } from "./lettersTarget.ts"

/** Bytes of a key in a summary. */
const shownKeyBytes = 1_024
/** Bytes of a key or a value that a text is looked for in. */
const searchedBytes = 65_536

/** A summary, without what the journal tells of it. */
export type Shown = Omit<Summary, "history">

export const of = ({ letter, state }: StatedLetter): Shown => {
  const { record, key, value } = letter
  return {
    ...{ partition: record.partition, offset: record.offset, state, fingerprint: letter.fingerprint },
    ...{ exceptionClass: letter.lastExceptionClass, exceptionMessage: letter.lastExceptionMessage },
    ...{ reason: letter.dltReason, detail: letter.dltDetail, deadLetteredMillis: letter.dltTimestamp },
    ...{ originFrom: letter.originFrom, originalTopic: letter.originalTopic },
    ...{ originalPartition: letter.originalPartition },
    ...{ originalOffset: letter.originalOffset, totalAttempts: letter.totalAttempts },
    ...{ replayCount: letter.replayCount, owner: letter.owner },
    key: HeaderValues.text(key?.subarray(0, shownKeyBytes)),
    valueBytes: value?.length
  }
}

/** Whether a page of the query has a dead letter. */
export const matcher = ({
  fingerprint,
  states,
  text,
  searchesPayload = false
}: Query): ((stated: StatedLetter) => boolean) => {
  const wanted = text?.toLowerCase()
  return ({ letter, state }) =>
    (states === undefined || states.includes(state)) &&
    (fingerprint === undefined || letter.fingerprint === fingerprint) &&
    (wanted === undefined || texts(letter, searchesPayload).some((each) => each.toLowerCase().includes(wanted)))
}

const texts = (letter: DeadLetterRecord, searchesPayload: boolean): ReadonlyArray<string> => {
  const { lastExceptionClass, fingerprint, originalTopic, lastExceptionMessage, dltDetail = "", key, value } = letter
  const always = [lastExceptionClass, fingerprint, originalTopic]
  if (!searchesPayload) return always
  const payload = [key, value].map((bytes) => HeaderValues.text(bytes?.subarray(0, searchedBytes)) ?? "")
  return [...always, lastExceptionMessage, dltDetail, ...payload]
}
