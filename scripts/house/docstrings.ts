/**
 * Every export of a public module, and every member of an exported class, interface or object type, has a docstring.
 */
import type { Check, Violation } from "./report.ts"
import { type Export, type Member, type PublicModule, publicPackages } from "./surface.ts"

export const docstrings: Check = (root) => {
  const packages = publicPackages(root)
  const counts = packages.map(({ folder, modules }) => {
    const exports = modules.flatMap((module) => module.exports)
    const members = exports.flatMap((exported) => exported.members).length
    const missing = exports.filter(isUndocumented).length
    const missingMembers = exports.flatMap(undocumentedMembers).length
    return `${folder}: ${missing} of ${exports.length} exports and ${missingMembers} of ${members} members lack one`
  })
  return {
    violations: packages.flatMap(({ modules }) => modules.flatMap(missingIn)),
    summary: `\n  ${counts.join("\n  ")}`
  }
}

const isUndocumented = ({ docstring }: Export): boolean => docstring === undefined

/** A member that stands in several alternatives of a type is documented once. */
const undocumentedMembers = ({ members }: Export): ReadonlyArray<Member> => {
  const documented = new Set(members.filter(({ docstring }) => docstring !== undefined).map(({ name }) => name))
  const first = new Map(members.toReversed().map((member) => [member.name, member]))
  return [...first.values()].filter(({ name }) => !documented.has(name)).toReversed()
}

const missingIn = ({ file, exports }: PublicModule): ReadonlyArray<Violation> => [
  ...(file.comments[0]?.value.startsWith("*") && file.text.slice(0, file.comments[0].start).trim() === ""
    ? []
    : [{ file: file.path, line: 1, message: "the module has no docstring" }]),
  ...exports.flatMap((exported) => {
    const { file, statement } = exported.declarations[0]!
    const own = isUndocumented(exported)
      ? [{ file: file.path, line: file.lineAt(statement.start), message: `${exported.name} has no docstring` }]
      : []
    const ofMembers = undocumentedMembers(exported).map(({ name, file, node }) => ({
      file: file.path,
      line: file.lineAt(node.start),
      message: `${exported.name}.${name} has no docstring`
    }))
    return [...own, ...ofMembers]
  })
]
