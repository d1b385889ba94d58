/**
 * The messages of a `.proto` file, by which message indexes name one. The entries of maps are no messages here, as in Confluent's Java classes. A registry answers with the text of
 * the file, or with its descriptor in Base64.
 */
import { fromBinary } from "@bufbuild/protobuf"
import { base64Decode } from "@bufbuild/protobuf/wire"
import { type DescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt"

interface Node {
  readonly name: string
  readonly messages: Array<Node>
}

/** The package of the file, empty without one, and its messages. */
export type MessageTree = Node

/** Throws when the text is no `.proto` file. */
export const parse = (text: string): MessageTree => {
  const trimmed = text.trim()
  return /^[\w+/=-]+$/.test(trimmed) ? ofDescriptor(trimmed) : ofText(text)
}

/** The full name of the message. Throws when the indexes lead to none. */
export const nameOf = (file: MessageTree, indexes: ReadonlyArray<number>): string => {
  const names = file.name === "" ? [] : [file.name]
  let node: Node = file
  for (const index of indexes) {
    const child = node.messages[index]
    if (child === undefined) {
      const where = node === file ? "the schema" : names.join(".")
      throw new Error(`message indexes [${indexes}] lead to no message: ${where} has ${node.messages.length}`)
    }
    names.push(child.name)
    node = child
  }
  return names.join(".")
}

const ofDescriptor = (base64: string): MessageTree => {
  const file = fromBinary(FileDescriptorProtoSchema, base64Decode(base64))
  if (file.messageType.length === 0) throw new Error("it is neither the text of a .proto file nor its descriptor")
  return { name: file.package, messages: nodesOf(file.messageType) }
}

const nodesOf = (messages: ReadonlyArray<DescriptorProto>): Array<Node> =>
  messages
    .filter(({ options }) => options?.mapEntry !== true)
    .map(({ name, nestedType }) => ({ name, messages: nodesOf(nestedType) }))

/** Comments, texts, words, and single signs. */
const tokens = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[\p{L}\p{N}_.]+|[^\s]/gu

const ofText = (text: string): MessageTree => {
  const words = Array.from(text.matchAll(tokens), ([token]) => token).filter((token) => !/^\/[/*]/.test(token))
  let name = ""
  const file: Array<Node> = []
  /** The messages of each open brace; undefined for blocks that are no messages. */
  const open: Array<Array<Node> | undefined> = [file]
  let statement: Array<string> = []
  for (const word of words) {
    if (word === "{") {
      const parent = open.at(-1)
      const isMessage = statement.length === 2 && statement[0] === "message" && parent !== undefined
      const node: Node | undefined = isMessage ? { name: statement[1]!, messages: [] } : undefined
      if (node !== undefined) parent?.push(node)
      open.push(node?.messages)
    } else if (word === "}") {
      if (open.length === 1) throw new Error("it is no .proto file: a brace is closed that none opens")
      open.pop()
    } else if (word === ";") {
      if (open.length === 1 && statement[0] === "package") name = statement[1] ?? ""
    } else {
      statement.push(word)
      continue
    }
    statement = []
  }
  if (open.length > 1) throw new Error("it is no .proto file: a brace is not closed")
  if (file.length === 0) throw new Error("it is no .proto file: it has no message")
  return { name, messages: file }
}
