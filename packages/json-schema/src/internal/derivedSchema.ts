/** The JSON Schema of an Effect schema. */
import * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"

export const make = <A, I>(schema: Schema.Codec<A, I>): object => {
  const document = JsonSchema.toDocumentDraft07(Schema.toJsonSchemaDocument(schema))
  const hasDefinitions = Object.keys(document.definitions).length > 0
  return {
    $schema: JsonSchema.META_SCHEMA_URI_DRAFT_07,
    ...document.schema,
    ...(hasDefinitions && { definitions: document.definitions })
  }
}
