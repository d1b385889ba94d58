/** The body of a request in the OpenAPI document: the handlers read it themselves, so that every issue has its path. */

/** A body of this schema. */
export const withBody =
  (schema: object, required = true) =>
  (operation: Record<string, unknown>): Record<string, unknown> => ({
    ...operation,
    requestBody: { required, content: { "application/json": { schema } } }
  })

/** The route reads a body, and takes only an empty one. */
export const withoutBody = ({ requestBody: _, ...operation }: Record<string, unknown>): Record<string, unknown> =>
  operation
