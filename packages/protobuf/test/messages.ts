/** The code that `protoc-gen-es` generates for two files, made from their descriptors. */
import { create, type Message, toBinary } from "@bufbuild/protobuf"
import { fileDesc, type GenMessage, messageDesc } from "@bufbuild/protobuf/codegenv2"
import { base64Encode } from "@bufbuild/protobuf/wire"
import {
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_timestamp
} from "@bufbuild/protobuf/wkt"

const [string, int64, message, repeated] = [9, 3, 11, 3]
const field = (
  name: string,
  number: number,
  type: number,
  rest: { readonly typeName?: string; readonly label?: number } = {}
) => create(FieldDescriptorProtoSchema, { ...{ name, number, type, label: 1, jsonName: name }, ...rest })

const address = create(FileDescriptorProtoSchema, {
  name: "shop/address.proto",
  package: "shop",
  syntax: "proto3",
  messageType: [{ name: "Address", field: [field("city", 1, string)] }]
})

const order = create(FileDescriptorProtoSchema, {
  name: "shop/order.proto",
  package: "shop",
  syntax: "proto3",
  dependency: ["shop/address.proto", "google/protobuf/timestamp.proto"],
  messageType: [
    {
      name: "Order",
      field: [
        field("id", 1, string),
        field("cents", 2, int64),
        field("to", 3, message, { typeName: ".shop.Address" }),
        field("notes", 4, message, { typeName: ".shop.Order.NotesEntry", label: repeated })
      ],
      nestedType: [
        {
          name: "NotesEntry",
          field: [field("key", 1, string), field("value", 2, string)],
          options: { mapEntry: true }
        },
        { name: "Line", field: [field("sku", 1, string)] },
        { name: "Gift", field: [field("to", 1, string)] }
      ]
    },
    { name: "Refund", field: [field("order", 1, string)] }
  ]
})

/** The `.proto` text of the second file. */
export const orderText = `
syntax = "proto3"; // message Comment { }
package shop;
import "shop/address.proto";
/* message Other { */
option (note) = { text: "message Text { }" };
message Order {
  reserved 9 to 10;
  string id = 1;
  oneof amount { int64 cents = 2; }
  Address to = 3 [json_name = "message"];
  map<string, string> notes = 4;
  enum Kind { NONE = 0; }
  message Line { string sku = 1; }
  message Gift { string to = 1; }
}
message Refund { string order = 1; }
`

const base64Of = (file: typeof order) => base64Encode(toBinary(FileDescriptorProtoSchema, file))
const addressFile = fileDesc(base64Of(address))
const orderFile = fileDesc(base64Of(order), [addressFile, file_google_protobuf_timestamp])

export type Order = Message<"shop.Order"> & { id: string; cents: bigint; notes: { [key: string]: string } }
export type Gift = Message<"shop.Order.Gift"> & { to: string }
export type Refund = Message<"shop.Refund"> & { order: string }

export const OrderSchema: GenMessage<Order> = messageDesc(orderFile, 0)
export const GiftSchema: GenMessage<Gift> = messageDesc(orderFile, 0, 1)
export const RefundSchema: GenMessage<Refund> = messageDesc(orderFile, 1)

/** The descriptor of the second file. */
export const orderDescriptor: Uint8Array<ArrayBuffer> = toBinary(FileDescriptorProtoSchema, order)
