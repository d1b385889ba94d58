/**
 * Reads the bodies of requests about plans over dead events. The outbox itself says of every field what is wrong with it, by the same paths.
 */
import * as Result from "effect/Result"
import type { ParameterIssue } from "../../AdminError.ts"
import type { PlanRequest } from "../../OutboxPort.ts"
import { allowed } from "../requests/parameters.ts"
import * as SelectionBody from "../requests/selectionBody.ts"
import * as PlanBody from "../runs/planBody.ts"

const texts = (description: string) => ({
  ...{ type: "array", minItems: 1, maxItems: 1_000 },
  items: { type: "string", minLength: 1, description }
})
const text = (description: string) => ({ type: "string", minLength: 1, description })

const { canary, canaryWait, rate, reason, stopAbove } = PlanBody.jsonSchema.properties

/** The body of a plan, for the OpenAPI document. */
export const jsonSchema = {
  type: "object",
  required: ["action", "select", "reason"],
  additionalProperties: false,
  properties: {
    action: { type: "string", enum: ["replay", "discard"], description: "discard deletes the rows, for good" },
    select: {
      ...{ type: "object", minProperties: 1, additionalProperties: false },
      description: "Dead events that meet all of the criteria. 'all' stands alone.",
      properties: {
        groups: texts(allowed.group),
        eventType: text(allowed.eventType),
        aggregateType: text(allowed.aggregateType),
        aggregateId: text(allowed.aggregateId),
        eventIds: texts(allowed.eventId),
        all: { type: "boolean", enum: [true] }
      }
    },
    ...{ rate, canary, canaryWait, stopAbove, reason }
  }
}

/** The body of a plan: an object whose action, where it has one, decides which permission its caller needs. Nothing else of it is checked. */
export const readPlan = (body: unknown): Result.Result<PlanRequest, ReadonlyArray<ParameterIssue>> => {
  if (!SelectionBody.isRecord(body)) return SelectionBody.notAnObject(body, "action, select and reason")
  const wait = PlanBody.durationOf(body["canaryWait"])
  // The port checks it.
  return Result.succeed({ ...body, ...(wait === undefined ? {} : { canaryWait: wait }) } as unknown as PlanRequest)
}
