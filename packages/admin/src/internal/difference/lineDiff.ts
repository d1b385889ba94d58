/**
 * The lines in which two texts differ, after Myers (1986): the fewest lines that are taken away and added.
 */
import type { DiffLine } from "../../DeadLetterAnswers.ts"

/** Most lines that are taken away and added between two texts. Texts that differ in more have their whole middle replaced. */
const mostEdits = 1_000

/** So many unchanged lines are shown before and after a change. */
const context = 3

/** Most lines of an answer. */
const mostLines = 400

/** Most characters of a line in an answer. */
const longestLine = 1_000

/** Two lines that are longer are cut to where they differ, with so many characters around. */
const longLine = 200
const around = 60

type Lines = ReadonlyArray<string>

/** Empty when the texts are the same. */
export const of = (before: Lines, after: Lines): ReadonlyArray<DiffLine> => {
  const start = commonStart(before, after, Math.min(before.length, after.length))
  const end = commonEnd(before, after, Math.min(before.length, after.length) - start)
  const [was, is] = [before.slice(start, before.length - end), after.slice(start, after.length - end)]
  if (was.length === 0 && is.length === 0) return []
  const whole = [...same(before.slice(0, start)), ...script(was, is), ...same(before.slice(before.length - end))]
  return bounded(folded(whole))
}

const lines = (sign: DiffLine["sign"], texts: Lines): ReadonlyArray<DiffLine> => texts.map((text) => ({ sign, text }))

const same = (texts: Lines) => lines(" ", texts)

interface Sequence {
  readonly length: number
  readonly [index: number]: unknown
}

const commonStart = (one: Sequence, other: Sequence, most: number): number => {
  let count = 0
  while (count < most && one[count] === other[count]) count++
  return count
}

const commonEnd = (one: Sequence, other: Sequence, most: number): number => {
  let count = 0
  while (count < most && one[one.length - 1 - count] === other[other.length - 1 - count]) count++
  return count
}

/** The shortest way from one text to the other, as lines. */
const script = (was: Lines, is: Lines): ReadonlyArray<DiffLine> => {
  const most = Math.min(was.length + is.length, mostEdits)
  /** By diagonal, the number of old lines that the way has passed which comes farthest. */
  const reached = new Int32Array(2 * most + 3)
  const steps: Array<Int32Array> = []
  for (let edits = 0; edits <= most; edits++) {
    steps.push(reached.slice(most - edits, most + edits + 3))
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const at = most + 1 + diagonal
      const adds = comesByAdding(reached, at, diagonal, edits)
      let old = adds ? reached[at + 1]! : reached[at - 1]! + 1
      while (old < was.length && old - diagonal < is.length && was[old] === is[old - diagonal]) old++
      reached[at] = old
      if (old >= was.length && old - diagonal >= is.length) return traced(steps, was, is)
    }
  }
  return [...lines("-", was), ...lines("+", is)]
}

/** Whether the way that comes farthest on a diagonal comes there by a line that is added. */
const comesByAdding = (reached: Int32Array, at: number, diagonal: number, edits: number): boolean =>
  diagonal === -edits || (diagonal !== edits && reached[at - 1]! < reached[at + 1]!)

/** Goes the way back. */
const traced = (steps: ReadonlyArray<Int32Array>, was: Lines, is: Lines): ReadonlyArray<DiffLine> => {
  const backwards: Array<DiffLine> = []
  let [old, now] = [was.length, is.length]
  for (let edits = steps.length - 1; edits >= 0; edits--) {
    const reached = steps[edits]!
    const diagonal = old - now
    const at = edits + 1 + diagonal
    const adds = comesByAdding(reached, at, diagonal, edits)
    const from = adds ? reached[at + 1]! : reached[at - 1]!
    const before = adds ? from - diagonal - 1 : from - diagonal + 1
    while (old > from && now > before) {
      old--
      now--
      backwards.push({ sign: " ", text: was[old]! })
    }
    if (edits > 0) backwards.push(adds ? { sign: "+", text: is[--now]! } : { sign: "-", text: was[--old]! })
  }
  return backwards.reverse()
}

/** Changes with the lines around them: first what is taken away, then what is added. */
const folded = (whole: ReadonlyArray<DiffLine>): ReadonlyArray<DiffLine> => {
  const shown: Array<DiffLine> = []
  for (let from = 0; from < whole.length; ) {
    const isSame = whole[from]!.sign === " "
    let to = from
    while (to < whole.length && (whole[to]!.sign === " ") === isSame) to++
    const part = whole.slice(from, to)
    for (const line of isSame ? unchanged(part, from === 0, to === whole.length) : changed(part)) shown.push(line)
    from = to
  }
  return shown
}

const unchanged = (part: ReadonlyArray<DiffLine>, isFirst: boolean, isLast: boolean): ReadonlyArray<DiffLine> => {
  const [head, tail] = [isFirst ? 0 : context, isLast ? 0 : context]
  const hidden = part.length - head - tail
  if (hidden <= 1) return part
  const fold: DiffLine = { sign: "…", text: `${hidden} lines stay as they are` }
  return [...part.slice(0, head), fold, ...part.slice(part.length - tail)]
}

const changed = (part: ReadonlyArray<DiffLine>): ReadonlyArray<DiffLine> => {
  const was = part.filter(({ sign }) => sign === "-").map(({ text }) => text)
  const is = part.filter(({ sign }) => sign === "+").map(({ text }) => text)
  const pairs = was.slice(0, is.length).map((text, index) => cut(text, is[index]!))
  return [
    ...was.map((text, index): DiffLine => ({ sign: "-", text: pairs[index]?.[0] ?? text })),
    ...is.map((text, index): DiffLine => ({ sign: "+", text: pairs[index]?.[1] ?? text }))
  ]
}

/** Both lines where they differ, if one of them is long. */
const cut = (was: string, is: string): readonly [string, string] => {
  const least = Math.min(was.length, is.length)
  if (Math.max(was.length, is.length) <= longLine) return [was, is]
  const start = commonStart(was, is, least)
  const end = commonEnd(was, is, least - start)
  const from = Math.max(0, start - around)
  const windowOf = (text: string) => {
    const to = Math.min(text.length, text.length - end + around)
    return `${from === 0 ? "" : "…"}${text.slice(from, to)}${to === text.length ? "" : "…"}`
  }
  return [windowOf(was), windowOf(is)]
}

const bounded = (shown: ReadonlyArray<DiffLine>): ReadonlyArray<DiffLine> => {
  const more = shown.length - mostLines
  const first = (more > 0 ? shown.slice(0, mostLines) : shown).map(
    ({ sign, text }): DiffLine => ({ sign, text: shortened(text) })
  )
  return more > 0 ? [...first, { sign: "…", text: `${more} more lines` }] : first
}

const shortened = (text: string): string =>
  text.length <= longestLine ? text : `${text.slice(0, longestLine)}… (${text.length} characters)`
