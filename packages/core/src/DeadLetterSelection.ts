/**
 * Which dead letters of a binding a command is about. Every command that takes a selection reads it by this module, so that a rehearsal and the replay after it mean the same
 * records.
 *
 * ```ts
 * import type { DeadLetterSelection } from "@eventbus/core"
 *
 * export const ofTheOutage: DeadLetterSelection.DeadLetterSelection = {
 *   fingerprints: ["v1-9f86d081884c7d65"],
 *   fromMillis: Date.parse("2026-03-01T02:00:00Z"),
 *   except: [{ partition: 3, offset: 1_204n }]
 * }
 * ```
 */
import * as Predicate from "effect/Predicate"
import type { RecordPosition } from "./ConsumerRecord.ts"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import * as Fingerprint from "./internal/failure/fingerprint.ts"
import * as HeaderValues from "./internal/record/headerValues.ts"

/** The position of a dead letter in its topic. */
export type Position = Omit<RecordPosition, "topic">

const positionText = /^(\d{1,9})@(\d{1,18})$/

/** Reads a position as people write it, `{partition}@{offset}`, such as `3@17`. Undefined for any other text. */
export const parsePosition = (text: string): Position | undefined => {
  const [, partition, offset] = positionText.exec(text) ?? []
  return partition === undefined ? undefined : { partition: Number(partition), offset: BigInt(offset!) }
}

/** `{partition}@{offset}`, such as `3@17`. */
export const formatPosition = ({ partition, offset }: Position): string => `${partition}@${offset}`

/**
 * The criteria of a selection. A dead letter is selected when it meets all criteria that are given and is not excepted. At least one criterion beside `except` is
 * given, and no list but `except` is empty: everything is selected by `all` alone, never by accident.
 */
export interface DeadLetterSelection {
  /** Of one of these groups, named by fingerprint (`DeadLetterRecord.fingerprint`). */
  readonly fingerprints?: ReadonlyArray<string>
  /** Dead-lettered at this time or later, epoch milliseconds. `-Infinity` stands for the beginning of time. */
  readonly fromMillis?: number
  /** Dead-lettered before this time, epoch milliseconds, which is later than `fromMillis`. `Infinity` stands for the end of time. */
  readonly toMillis?: number
  /** With one of these keys, as UTF-8 text. A dead letter without a key has none of them. */
  readonly keys?: ReadonlyArray<string>
  /** At one of these positions of the dead letter topic. */
  readonly records?: ReadonlyArray<Position>
  /** Every dead letter. Stands alone, or with `except`. */
  readonly all?: true
  /** None of these positions of the dead letter topic. May be empty. */
  readonly except?: ReadonlyArray<Position>
}

/** Something about a selection that no command takes. */
export interface Issue {
  /** Where, such as `selection.records[3].offset`. */
  readonly path: string
  /** The given value, as text. */
  readonly given: string
  /** The values that are allowed there. */
  readonly expected: string
}

const criteria = ["fingerprints", "fromMillis", "toMillis", "keys", "records", "all"] as const

/** The names of all criteria. */
export const names = [...criteria, "except"] as const
const known: ReadonlySet<string> = new Set(names)

/** All issues of a selection, whatever value it is; empty when commands take it. Never throws. */
export const issues = (selection: unknown): ReadonlyArray<Issue> => {
  try {
    return issuesOf(selection)
  } catch {
    return [issue("selection", "an object that throws when it is read", "an object with criteria")]
  }
}

const issuesOf = (selection: unknown): ReadonlyArray<Issue> => {
  if (!Predicate.isObject(selection) || Array.isArray(selection)) {
    return [issue("selection", selection, "an object with criteria")]
  }
  const given = selection as Readonly<Record<string, unknown>>
  const used = criteria.filter((name) => given[name] !== undefined)
  const found = Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name) => issue(`selection.${name}`, given[name], `no such criterion: one of ${[...known].join(", ")}`))
  // A criterion that is misspelt is no reason to call the selection empty.
  if (used.length === 0 && found.length === 0) found.push(issue("selection", "empty", `one of ${criteria.join(", ")}`))
  return [
    ...found,
    ...ofList(given, "fingerprints", ofFingerprint),
    ...ofWindow(given),
    ...ofList(given, "keys", ofKey),
    ...ofList(given, "records", issuesOfPosition),
    ...ofAll(given["all"], used),
    ...ofList(given, "except", issuesOfPosition)
  ]
}

type Given = Readonly<Record<string, unknown>>

const issue = (path: string, given: unknown, expected: string): Issue => ({ path, given: textOf(given), expected })

/** A text for a message, short, of whatever value. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return value === "" ? "empty" : value.slice(0, 100)
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list"
  if (typeof value === "function") return "a function"
  return Predicate.isObject(value) ? "an object" : String(value)
}

const ofList = (
  given: Given,
  name: string,
  check: (path: string, element: unknown) => ReadonlyArray<Issue>
): ReadonlyArray<Issue> => {
  const path = `selection.${name}`
  const list = given[name]
  if (list === undefined) return []
  if (!Array.isArray(list)) return [issue(path, list, "a list")]
  if (list.length === 0 && name !== "except") return [issue(path, list, "a list of one or more")]
  return Array.from(list as ReadonlyArray<unknown>, (element, index) => check(`${path}[${index}]`, element)).flat()
}

const ofFingerprint = (path: string, element: unknown): ReadonlyArray<Issue> =>
  Fingerprint.isFingerprint(element)
    ? []
    : [issue(path, element, "a fingerprint such as v1-9f86d081884c7d65 or own-payments")]

const ofKey = (path: string, element: unknown): ReadonlyArray<Issue> =>
  typeof element === "string" ? [] : [issue(path, element, "a text")]

/** The issues of one position, whatever value it is; empty when commands take it. */
export const issuesOfPosition = (path: string, element: unknown): ReadonlyArray<Issue> => {
  if (!Predicate.isObject(element)) return [issue(path, element, "a partition and an offset")]
  const { partition, offset } = element as { readonly [name: string]: unknown }
  const isPartition =
    Number.isInteger(partition) && Number(partition) >= 0 && Number(partition) <= HeaderValues.maxInt32
  const isOffset = typeof offset === "bigint" && offset >= 0n && offset < 2n ** 63n
  return [
    ...(isPartition ? [] : [issue(`${path}.partition`, partition, "a whole number of 0 or more")]),
    ...(isOffset ? [] : [issue(`${path}.offset`, offset, "a bigint of 0 or more")])
  ]
}

const ofWindow = ({ fromMillis, toMillis }: Given): ReadonlyArray<Issue> => {
  const isTime = (millis: unknown): millis is number => typeof millis === "number" && !Number.isNaN(millis)
  const ofTime = (name: string, millis: unknown) =>
    millis === undefined || isTime(millis) ? [] : [issue(`selection.${name}`, millis, "epoch milliseconds")]
  const isEmpty = isTime(fromMillis) && isTime(toMillis) && fromMillis >= toMillis
  return [
    ...ofTime("fromMillis", fromMillis),
    ...ofTime("toMillis", toMillis),
    ...(isEmpty ? [issue("selection.toMillis", toMillis, `a time after fromMillis, which is ${fromMillis}`)] : [])
  ]
}

const ofAll = (all: unknown, used: ReadonlyArray<string>): ReadonlyArray<Issue> => {
  if (all === undefined) return []
  if (all !== true) return [issue("selection.all", all, "true, or no 'all'")]
  const others = used.filter((name) => name !== "all")
  return others.length === 0 ? [] : [issue("selection.all", all, `no 'all' beside ${others.join(", ")}`)]
}

/**
 * Whether the selection takes a dead letter. It reads the selection once, and each dead letter in constant time. Give it a selection without `issues`, and dead letters as a
 * command lists them, with the fingerprint of the binding's own function.
 */
export const matches = (selection: DeadLetterSelection): ((letter: DeadLetterRecord) => boolean) => {
  const { fromMillis = Number.NEGATIVE_INFINITY, toMillis = Number.POSITIVE_INFINITY } = selection
  const fingerprints = setOf(selection.fingerprints)
  const keys = setOf(selection.keys)
  const records = setOf(selection.records?.map(formatPosition))
  const except = new Set(selection.except?.map(formatPosition))
  // The fingerprint comes last: a dead letter of an older release gets its own only when somebody asks for it.
  return (letter) =>
    letter.dltTimestamp >= fromMillis &&
    letter.dltTimestamp < toMillis &&
    (records === undefined || records.has(formatPosition(letter.record))) &&
    !(except.size > 0 && except.has(formatPosition(letter.record))) &&
    (keys === undefined || (letter.key !== null && keys.has(HeaderValues.text(letter.key)!))) &&
    (fingerprints === undefined || fingerprints.has(letter.fingerprint))
}

const setOf = (list: ReadonlyArray<string> | undefined): ReadonlySet<string> | undefined =>
  list === undefined ? undefined : new Set(list)
