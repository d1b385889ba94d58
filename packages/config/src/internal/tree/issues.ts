/**
 * The mistakes that are found while a configuration is read; one at each path, the first.
 */
import type { EventBusError } from "@eventbus/core"
import * as Node from "./node.ts"

export interface Issues {
  readonly add: (path: Node.Path, found: string, allowed: string, at?: Node.Place) => void
  /** A file that could not be read at all: what is missing on its account is no further mistake. */
  readonly unreadable: (found: string, allowed: string, at: Node.Place) => void
  readonly isReadable: () => boolean
  /** By file, line and column. */
  readonly all: () => ReadonlyArray<EventBusError.ConfigurationIssue>
}

export const make = (): Issues => {
  const found: Array<EventBusError.ConfigurationIssue> = []
  const told = new Set<string>()
  let readable = true
  const put = (issue: EventBusError.ConfigurationIssue) => {
    const { path, allowed, at } = issue
    // What many bindings share, such as a default, is told once.
    const place = at?.line === undefined ? path : `${at.file}:${at.line}:${at.column} ${allowed}`
    if (!told.has(path) && !told.has(place)) found.push(issue)
    told.add(path).add(place)
  }
  return {
    add: (path, found, allowed, at) =>
      put({ path: Node.formatPath(path), found, allowed, ...(at === undefined ? {} : { at }) }),
    unreadable: (what, allowed, at) => {
      readable = false
      found.push({ path: "", found: what, allowed, at })
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
