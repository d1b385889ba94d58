/**
 * The figures of a rehearsal while it runs.
 */
import * as Equal from "effect/Equal"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Counts, FailureCount, GroupVerdict, LetterVerdict, Verdict } from "../../Rehearsal.ts"
import { mostGroups } from "./groupTally.ts"
import type { StatedLetter } from "./lettersTarget.ts"

/** Ways to fail that a group tells apart. */
const mostFailures = 20

type Figures = { -readonly [K in keyof Counts]: number }

const figures = (): Figures => ({
  ...{ selected: 0, passes: 0, decodes: 0, undecodable: 0, fails: 0, timedOut: 0, stays: 0, skipped: 0, exhausted: 0 }
})

const figureOf: { readonly [T in Verdict["_tag"]]: keyof Figures } = {
  Passes: "passes",
  Decodes: "decodes",
  Undecodable: "undecodable",
  Fails: "fails",
  TimedOut: "timedOut",
  Stays: "stays",
  Skipped: "skipped"
}

const count = (counted: Figures, { _tag }: Verdict, { state }: StatedLetter): void => {
  counted.selected++
  counted[figureOf[_tag]]++
  if (state === "exhausted") counted.exhausted++
}

type Failing = { -readonly [K in keyof FailureCount]: FailureCount[K] }

class Group {
  readonly figures = figures()
  readonly #fingerprint: string
  readonly #exceptionClass: string
  readonly #failures: Array<Failing> = []

  constructor(fingerprint: string, { lastExceptionClass }: DeadLetterRecord) {
    this.#fingerprint = fingerprint
    this.#exceptionClass = lastExceptionClass
  }

  add(verdict: Verdict, stated: StatedLetter): void {
    count(this.figures, verdict, stated)
    if (verdict._tag !== "Fails") return
    const { exceptionClass, message, route } = verdict
    const known = this.#failures.find(
      (each) => each.exceptionClass === exceptionClass && Equal.equals(each.route, route)
    )
    if (known !== undefined) known.count++
    else if (this.#failures.length < mostFailures) this.#failures.push({ exceptionClass, message, route, count: 1 })
  }

  result(): GroupVerdict {
    return {
      ...{ ...this.figures, fingerprint: this.#fingerprint, exceptionClass: this.#exceptionClass },
      failures: this.#failures.toSorted((a, b) => b.count - a.count)
    }
  }
}

export class RehearsalTally {
  readonly figures = figures()
  readonly letters: Array<LetterVerdict> = []
  readonly #groups = new Map<string, Group>()
  readonly #listed: number

  constructor(listed: number) {
    this.#listed = listed
  }

  add(verdict: Verdict, stated: StatedLetter): void {
    const { letter } = stated
    const { record, fingerprint } = letter
    count(this.figures, verdict, stated)
    if (this.letters.length < this.#listed) {
      this.letters.push({ partition: record.partition, offset: record.offset, fingerprint, verdict })
    }
    const name = this.#groups.has(fingerprint) || this.#groups.size < mostGroups ? fingerprint : "other"
    const group = this.#groups.get(name) ?? new Group(name, letter)
    this.#groups.set(name, group)
    group.add(verdict, stated)
  }

  groups(): ReadonlyArray<GroupVerdict> {
    return Array.from(this.#groups.values(), (group) => group.result()).sort((a, b) => b.selected - a.selected)
  }
}
