/** The descriptor of a `.proto` file in generated code: the schema to register, the files that it imports, and the way to a message. */
import { type DescFile, type DescMessage, toBinary } from "@bufbuild/protobuf"
import { base64Encode } from "@bufbuild/protobuf/wire"
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt"
import type { SchemaRegistry, UnusableSchema } from "@eventbus/schema-registry"
import * as Effect from "effect/Effect"

/** The descriptor of a file in Base64, as Confluent's clients for languages without `.proto` texts register it. */
export const textOf = (file: DescFile): string => base64Encode(toBinary(FileDescriptorProtoSchema, file.proto))

/** The index of the message at each level of nesting, from the file on. */
export const indexesOf = (message: DescMessage): ReadonlyArray<number> => {
  const { parent } = message
  return parent === undefined
    ? [message.file.messages.indexOf(message)]
    : [...indexesOf(parent), parent.nestedMessages.indexOf(message)]
}

/** Files that every registry has. */
const builtIn = /^(google\/(protobuf|type)|confluent)\//

/** The registered schemas of the files that a file imports, each after those that it imports itself. */
export const referencesOf = Effect.fnUntraced(function* (
  registry: SchemaRegistry.SchemaRegistry["Service"],
  file: DescFile,
  options: { readonly register?: boolean }
): Effect.fn.Return<ReadonlyArray<SchemaRegistry.Reference>, UnusableSchema.UnusableSchema> {
  const references: Array<SchemaRegistry.Reference> = []
  for (const imported of file.dependencies) {
    const name = imported.proto.name
    if (builtIn.test(name)) continue
    const version = yield* registry.versionOf({
      ...(options.register !== undefined && { register: options.register }),
      subject: name,
      schema: textOf(imported),
      type: "PROTOBUF",
      references: yield* referencesOf(registry, imported, options)
    })
    references.push({ name, subject: name, version })
  }
  return references
})
