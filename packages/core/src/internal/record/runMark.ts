/**
 * The mark of a copy that a run of a plan published: the run, and the dead letter that the copy is made of. It goes with the record through the tiers into its next dead
 * letter, so that a receipt knows which copies came back. It decides nothing about the delivery of a record.
 */
import type { Header } from "../../ConsumerRecord.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

export interface RunMark {
  /** The id of the run. */
  readonly runId: string
  /** The partition of the dead letter topic that the dead letter lies in. */
  readonly partition: number
  /** Its offset there. */
  readonly offset: bigint
}

const encoder = new TextEncoder()

export const header = ({ runId, partition, offset }: RunMark): Header => ({
  key: Names.runId,
  value: encoder.encode(`${runId}/${partition}@${offset}`)
})

/** Whether a text can be the id of a run. */
export const isRunId = (text: unknown): text is string =>
  typeof text === "string" && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

const form = /^([0-9a-f-]{36})\/(\d{1,10})@(\d{1,19})$/

/** The mark in a header. Undefined for a header that is missing or malformed. The caller knows whether it can be believed. */
export const read = (value: HeaderValues.HeaderValue): RunMark | undefined => {
  const [, runId, partition, offset] = value === undefined ? [] : (form.exec(HeaderValues.text(value) ?? "") ?? [])
  return isRunId(runId) ? { runId, partition: Number(partition), offset: BigInt(offset!) } : undefined
}
