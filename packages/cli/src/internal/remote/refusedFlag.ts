/**
 * The flag whose value no request takes. The schemas of the API refuse it before anything is sent, so it is the caller's mistake and no answer of the process.
 */
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"

/** Such as `--limit has a value that no process takes; allowed is a whole number, 1 to 500`. */
export const refusedFlag = (issue: SchemaIssue.Issue, declared?: SchemaAST.AST): string => {
  switch (issue._tag) {
    case "Pointer": {
      const name = String(issue.path[0])
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
      return `--${flag} has a value that no process takes; allowed is ${allowedOf(declared, name) ?? "another one"}`
    }
    case "Composite":
      return refusedFlag(issue.issues[0], issue.ast)
    case "Filter":
    case "Encoding":
      return refusedFlag(issue.issue, declared)
    default:
      return "the request has a value that no process takes"
  }
}

/** Every parameter says in its description which values it may have. */
const allowedOf = (declared: SchemaAST.AST | undefined, name: string): string | undefined => {
  if (declared === undefined || !SchemaAST.isObjects(declared)) return undefined
  const description = declared.propertySignatures.find((each) => each.name === name)?.type.annotations?.["description"]
  return typeof description === "string" ? description : undefined
}
