/**
 * Collects the mistakes of a configuration, at most one for each path: the first.
 */
import type { EventBusError } from "@eventbus/core"
import * as Node from "./node.ts"

export interface Issues {
  readonly add: (path: Node.Path, found: string, allowed: string, location?: Node.SourceLocation) => void
  /** A file cannot be read at all. Keys that are missing because of it are no further mistakes. */
  readonly unreadable: (found: string, allowed: string, location: Node.SourceLocation) => void
  readonly isReadable: () => boolean
  /** Issues sorted by file, line and column. */
  readonly all: () => ReadonlyArray<EventBusError.ConfigurationIssue>
}

export const make = (): Issues => {
  const found: Array<EventBusError.ConfigurationIssue> = []
  const reported = new Set<string>()
  let readable = true
  const put = (issue: EventBusError.ConfigurationIssue) => {
    const { path, allowed, at } = issue
    // A mistake that many bindings share, such as one in the defaults, is reported once.
    const location = at?.line === undefined ? path : `${at.file}:${at.line}:${at.column} ${allowed}`
    if (!reported.has(path) && !reported.has(location)) found.push(issue)
    reported.add(path).add(location)
  }
  return {
    add: (path, found, allowed, location) =>
      put({ path: Node.formatPath(path), found, allowed, ...(location === undefined ? {} : { at: location }) }),
    unreadable: (what, allowed, location) => {
      readable = false
      found.push({ path: "", found: what, allowed, at: location })
    },
    isReadable: () => readable,
    all: () => {
      const files = new Map<string | undefined, number>()
      for (const { at } of found) if (!files.has(at?.file)) files.set(at?.file, files.size)
      const rank = ({ at }: EventBusError.ConfigurationIssue): ReadonlyArray<number> => [
        files.get(at?.file)!,
        at?.line ?? 0,
        at?.column ?? 0
      ]
      return found.toSorted((left, right) => {
        const [a, b] = [rank(left), rank(right)]
        return a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!
      })
    }
  }
}
