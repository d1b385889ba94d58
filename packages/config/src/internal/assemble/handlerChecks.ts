/**
 * Checks whether a binding's settings and its handler fit together.
 */
import type { BindingSettings } from "../../BindingSettings.ts"
import type { Handlers } from "../../Handlers.ts"
import * as ErrorNames from "../schema/errorNames.ts"
import * as Names from "../tree/names.ts"
import type * as Node from "../tree/node.ts"

export interface Problem {
  /** Path below the binding. */
  readonly path: Node.Path
  readonly found: string
  readonly allowed: string
}

export const problems = (settings: BindingSettings, { byName }: Handlers<unknown>): ReadonlyArray<Problem> => {
  const { handler: handlerName, deadLetter, listenerType } = settings
  const issue = (path: Node.Path, found: string, allowed: string): Problem => ({ path, found, allowed })
  const handler = byName.get(handlerName)
  if (handler === undefined) {
    const known = Array.from(byName.keys())
    const hint = Names.hint(handlerName, known)
    return [issue(["handler"], JSON.stringify(handlerName), `one of the handlers ${known.join(", ")}${hint}`)]
  }
  const needsOnDeadLetter = deadLetter.strategy === "ALERT_AND_STORE" || deadLetter.strategy === "CUSTOM"
  return [
    ...(needsOnDeadLetter && !handler.hasOnDeadLetter
      ? [
          issue(
            ["deadLetter", "strategy"],
            deadLetter.strategy,
            `a strategy without code, or onDeadLetter in handler '${handlerName}'`
          )
        ]
      : []),
    ...(handler.kind === "batch" && listenerType !== "BATCH"
      ? [issue(["listenerType"], listenerType, `BATCH: handler '${handlerName}' takes whole batches`)]
      : []),
    ...(handler.errors === undefined ? [] : unknownErrors(settings, handler.errors)).map(({ path, found }) =>
      issue(path, JSON.stringify(found), allowedErrors(found, handlerName, handler.errors!))
    )
  ]
}

const unknownErrors = ({ retry }: BindingSettings, names: ErrorNames.Names) =>
  [
    ...(["retryableExceptions", "nonRetryableExceptions"] as const).flatMap((list) =>
      retry[list].map((found, index) => ({ path: ["retry", list, index], found }))
    ),
    ...Object.keys(retry.skipToTierMapping).map((found) => ({ path: ["retry", "skipToTierMapping", found], found }))
  ].filter(({ found }) => ErrorNames.isUnknown(found, names))

const allowedErrors = (found: string, handlerName: string, names: ErrorNames.Names): string => {
  const known = Array.from(names).flatMap(([tag, others]) => [tag, ...others])
  const hint = Names.hint(found, known)
  return `an error of handler '${handlerName}' (${known.join(", ")}), or an expression on its message such as /timed? out/${hint}`
}
