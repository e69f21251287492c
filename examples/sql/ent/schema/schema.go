// Package schema is the schema of the ent program, from which its package db is
// generated.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Account is a row of reprise_example.accounts.
type Account struct{ ent.Schema }

// Annotations implements ent.Interface.
func (Account) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "accounts"}}
}

// Fields implements ent.Interface.
func (Account) Fields() []ent.Field {
	return []ent.Field{field.String("id"), field.Int64("balance")}
}

// Transfer is a row of reprise_example.transfers.
type Transfer struct{ ent.Schema }

// Annotations implements ent.Interface.
func (Transfer) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "transfers"}}
}

// Fields implements ent.Interface.
func (Transfer) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"), field.String("source"), field.String("target"), field.Int64("amount"), field.String("note"),
	}
}
