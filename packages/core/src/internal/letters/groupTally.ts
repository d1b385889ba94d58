/**
 * The figures of groups of dead letters while they are counted.
 */
import type { DeadLetterGroup, GroupReport, GroupState } from "../../DeadLetterGroup.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Position } from "../../DeadLetterSelection.ts"
import { masked } from "../failure/applicationFrame.ts"
import * as FailureHeaders from "../record/failureHeaders.ts"

/** Headers are untrusted input, and a user's function may give each dead letter a group of its own. */
export const mostGroups = 1_000

const mostSamples = 5
const longestMessage = 200
const hourMillis = 3_600_000
const trendHours = 24

/** The message of an error with `#` for numbers and ids. */
const maskedMessage = (message: string): string => masked(message.slice(0, 1_000), 1, 1, longestMessage)

interface Sample extends Position {
  readonly millis: number
}

class Group {
  readonly letter: Pick<
    DeadLetterGroup,
    "fingerprint" | "exceptionClass" | "frame" | "message" | "originFrom" | "originalTopic"
  >
  readonly states: Record<GroupState, number> = { waiting: 0, exhausted: 0, failed: 0, "dealt-with": 0 }
  readonly trend = Array.from({ length: trendHours }, () => 0)
  /** The newest first. */
  readonly samples: Array<Sample> = []
  discarded = 0
  cameBack = 0
  firstMillis = Number.POSITIVE_INFINITY
  lastMillis = Number.NEGATIVE_INFINITY

  /** Takes texts from the first dead letter of the group, and keeps nothing else of it. */
  constructor(letter: DeadLetterRecord) {
    const { fingerprint, lastExceptionClass, lastExceptionMessage, originFrom, originalTopic } = letter
    this.letter = {
      ...{ fingerprint, originFrom, originalTopic, exceptionClass: lastExceptionClass },
      frame: FailureHeaders.frameOf(letter),
      message: maskedMessage(lastExceptionMessage)
    }
  }

  add({ dltTimestamp: millis, replayCount, record }: DeadLetterRecord, state: GroupState, nowMillis: number): void {
    this.states[state]++
    if (replayCount > 0) this.cameBack++
    this.firstMillis = Math.min(this.firstMillis, millis)
    this.lastMillis = Math.max(this.lastMillis, millis)
    // A clock that is ahead of this one has its dead letters in the last hour.
    const hour = trendHours - 1 - Math.max(0, Math.floor((nowMillis - millis) / hourMillis))
    if (hour >= 0) this.trend[hour]!++
    this.#sample({ partition: record.partition, offset: record.offset, millis })
  }

  #sample(sample: Sample): void {
    const { samples } = this
    if (samples.length === mostSamples && samples[mostSamples - 1]!.millis > sample.millis) return
    const before = samples.findIndex(({ millis }) => millis <= sample.millis)
    samples.splice(before === -1 ? samples.length : before, 0, sample)
    if (samples.length > mostSamples) samples.pop()
  }

  /** Dead letters that are not dealt with. */
  get count(): number {
    const { waiting, exhausted, failed } = this.states
    return waiting + exhausted + failed
  }

  result(): DeadLetterGroup {
    const { letter, count, states, discarded, cameBack, firstMillis, lastMillis, trend, samples } = this
    return {
      ...letter,
      ...{ count, states, discarded, cameBack, firstMillis, lastMillis, trend },
      samples: samples.map(({ partition, offset }) => ({ partition, offset }))
    }
  }
}

export class GroupTally {
  foreign = 0
  unreadable = 0
  #other = 0
  readonly #nowMillis: number
  readonly #groups = new Map<string, Group>()

  constructor(nowMillis: number) {
    this.#nowMillis = nowMillis
  }

  add(letter: DeadLetterRecord, state: GroupState, isDiscarded: boolean): void {
    const { fingerprint } = letter
    let group = this.#groups.get(fingerprint)
    if (group === undefined) {
      if (this.#groups.size === mostGroups) {
        this.#other++
        return
      }
      group = new Group(letter)
      this.#groups.set(fingerprint, group)
    }
    group.add(letter, state, this.#nowMillis)
    if (isDiscarded) group.discarded++
  }

  report(): GroupReport {
    const groups = Array.from(this.#groups.values(), (group) => group.result())
    return {
      groups: groups.sort((a, b) => b.count - a.count || b.lastMillis - a.lastMillis),
      ...{ other: this.#other, foreign: this.foreign, unreadable: this.unreadable, readMillis: this.#nowMillis }
    }
  }
}
