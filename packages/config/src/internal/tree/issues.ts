/**
 * Collects the mistakes of a configuration, at most one for each path: the first. Those of a file are all listed. A request with a hundred thousand mistakes must not keep the
 * process busy, nor get an answer of many megabytes: its first ones are listed, and the rest are counted.
 */
import type { EventBusError } from "@eventbus/core"
import * as Node from "./node.ts"

export interface Issues {
  readonly add: (path: Node.Path, found: string, allowed: string, location?: Node.SourceLocation) => void
  /** A key that occurs again: each time is a mistake of its own. */
  readonly duplicate: Issues["add"]
  /** A file cannot be read at all. Keys that are missing because of it are no further mistakes. */
  readonly unreadable: (found: string, allowed: string, location: Node.SourceLocation) => void
  readonly isReadable: () => boolean
  /** Whether further mistakes are only counted, by `more`. */
  readonly isFull: () => boolean
  /** Counts a mistake that is not listed. */
  readonly more: () => void
  /** Issues sorted by file, line and column, and behind them how many are not listed. */
  readonly all: () => ReadonlyArray<EventBusError.ConfigurationIssue>
}

/** Mistakes of a request that are listed. */
export const mostOfRequest = 200

/** `most`: how many are listed. */
export const make = (most = Number.POSITIVE_INFINITY): Issues => {
  const found: Array<EventBusError.ConfigurationIssue> = []
  const reported = new Set<string>()
  let readable = true
  let notListed = 0
  const isFull = () => found.length >= most
  const put = (issue: EventBusError.ConfigurationIssue, isAgain = false) => {
    const { path, allowed, at } = issue
    // A mistake that many bindings share, such as one in the defaults, is reported once.
    const location = at?.line === undefined ? path : `${at.file}:${at.line}:${at.column} ${allowed}`
    if ((isAgain || !reported.has(path)) && !reported.has(location)) {
      if (isFull()) {
        notListed++
        return
      }
      found.push(issue)
    }
    reported.add(path).add(location)
  }
  const of = (...[path, found, allowed, location]: Parameters<Issues["add"]>): EventBusError.ConfigurationIssue => ({
    ...{ path: Node.formatPath(path), found, allowed },
    ...(location === undefined ? {} : { at: location })
  })
  return {
    add: (...mistake) => put(of(...mistake)),
    duplicate: (...mistake) => put(of(...mistake), true),
    unreadable: (what, allowed, location) => {
      readable = false
      found.push({ path: "", found: what, allowed, at: location })
    },
    isReadable: () => readable,
    isFull,
    more: () => void notListed++,
    all: () => {
      const files = new Map<string | undefined, number>()
      for (const { at } of found) if (!files.has(at?.file)) files.set(at?.file, files.size)
      const rank = ({ at }: EventBusError.ConfigurationIssue): ReadonlyArray<number> => [
        files.get(at?.file)!,
        at?.line ?? 0,
        at?.column ?? 0
      ]
      const sorted = found.toSorted((left, right) => {
        const [a, b] = [rank(left), rank(right)]
        return a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!
      })
      if (notListed === 0) return sorted
      const rest = { path: "", found: `${notListed} more mistakes`, allowed: "none; the first of them are listed" }
      return [...sorted, rest]
    }
  }
}
