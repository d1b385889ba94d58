/**
 * The topics of a binding as they are given: one name, or a list of names.
 */
import * as Kinds from "../../Kinds.ts"
import { shown } from "../base/shown.ts"

/** One topic, or several. */
export type Given = string | ReadonlyArray<string>

const allowed = "a topic name, or a list of one or more topic names"

/** Names that are legal and do not collide are a matter of the rules between settings. */
export const kind: Kinds.Kind = (path, found) => {
  if (typeof found === "string") return []
  const issues = Kinds.listOf(Kinds.string, allowed)(path, found)
  if (issues.length > 0) return issues
  const names = found as ReadonlyArray<string>
  return names.length === 0 ? [{ path, found: "an empty list", allowed }] : repeated(path, names)
}

const repeated = (path: string, names: ReadonlyArray<string>) =>
  names.flatMap((name, at) => {
    const first = names.indexOf(name)
    return first === at
      ? []
      : [{ path: `${path}[${at}]`, found: shown(name), allowed: `each topic once: ${path}[${first}] is the same` }]
  })

/** The names in their order. */
export const listOf = (given: Given): ReadonlyArray<string> => (typeof given === "string" ? [given] : given)
