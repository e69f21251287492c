package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// The breaks: what an operator becomes.
var (
	negations = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	}
	boundaries = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	}
	arithmetic = map[token.Token]token.Token{
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	}
	logical = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
	helpers = map[token.Token]string{
		token.LSS: "mutLess", token.LEQ: "mutLessEqual", token.GTR: "mutGreater", token.GEQ: "mutGreaterEqual",
		token.ADD: "mutAdd", token.SUB: "mutSubtract", token.MUL: "mutMultiply", token.QUO: "mutDivide", token.REM: "mutRemainder",
		token.LAND: "mutAnd", token.LOR: "mutOr",
	}
)

// switches is the file that is added to the package: which break is on, and which places
// the tests come by.
const switches = `package %s

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
)

var mutActive, mutSeen = mutStart()

func mutStart() (int, []byte) {
	id, _ := strconv.Atoi(os.Getenv("MUTATE_ID"))
	if path := os.Getenv("MUTATE_SEEN"); path != "" {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			panic(err)
		}
		seen, err := syscall.Mmap(int(f.Fd()), 0, mutSites+1, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		return id, seen
	}
	return id, nil
}

func mutOn(id int) bool {
	if mutSeen != nil {
		mutSeen[id] = 1
	}
	return id == mutActive
}

type mutInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutNumber interface{ mutInteger | ~float32 | ~float64 }

func mutLess[T cmp.Ordered](id int, a, b T) bool { return a < b || mutOn(id) && a == b }
func mutGreater[T cmp.Ordered](id int, a, b T) bool { return a > b || mutOn(id) && a == b }
func mutLessEqual[T cmp.Ordered](id int, a, b T) bool { return a < b || !mutOn(id) && a == b }
func mutGreaterEqual[T cmp.Ordered](id int, a, b T) bool { return a > b || !mutOn(id) && a == b }
func mutAdd[T mutNumber](id int, a, b T) T { if mutOn(id) { return a - b }; return a + b }
func mutSubtract[T mutNumber](id int, a, b T) T { if mutOn(id) { return a + b }; return a - b }
func mutMultiply[T mutNumber](id int, a, b T) T { if mutOn(id) { return a / b }; return a * b }
func mutDivide[T mutNumber](id int, a, b T) T { if mutOn(id) { return a * b }; return a / b }
func mutRemainder[T mutInteger](id int, a, b T) T { if mutOn(id) { return a * b }; return a %% b }
func mutMinus[T mutNumber](id int, a T) T { if mutOn(id) { return a }; return -a }
func mutStep(id, by int) int { if mutOn(id) { return -by }; return by }
func mutAnd(id int, a bool, b func() bool) bool { if mutOn(id) { return a || b() }; return a && b() }
func mutOr(id int, a bool, b func() bool) bool { if mutOn(id) { return a && b() }; return a || b() }

const mutSites = %d
`

// An edit puts text in place of what is between two offsets.
type edit struct {
	from, to int
	text     string
	closes   bool // goes before what others put at its place, and after what inner ones close
	order    int
}

// breaker finds the sites of one file, and writes the file with their switches.
type breaker struct {
	fset   *token.FileSet
	info   *types.Info
	file   *ast.File
	name   string
	source []byte
	next   *int
	sites  []*site
	edits  []edit
	wanted func(file string, line int) bool
	fixed  int // the constants and lengths around the node
}

func (b *breaker) site(pos token.Pos, what string) int {
	at := b.fset.Position(pos)
	if b.fixed > 0 || !b.wanted(b.name, at.Line) {
		return 0
	}
	*b.next++
	line := bytes.Split(b.source, []byte("\n"))[at.Line-1]
	b.sites = append(b.sites, &site{
		ID: *b.next, File: b.name, Line: at.Line, Column: at.Column, What: what, Code: strings.TrimSpace(string(line)), Status: uncovered,
	})
	return *b.next
}

func (b *breaker) offset(pos token.Pos) int { return b.fset.Position(pos).Offset }

func (b *breaker) open(pos token.Pos, text string) {
	b.edits = append(b.edits, edit{from: b.offset(pos), to: b.offset(pos), text: text, order: len(b.edits)})
}

func (b *breaker) shut(pos token.Pos, text string) {
	b.edits = append(b.edits, edit{from: b.offset(pos), to: b.offset(pos), text: text, closes: true, order: -len(b.edits)})
}

func (b *breaker) replace(pos token.Pos, length int, text string) {
	b.edits = append(b.edits, edit{from: b.offset(pos), to: b.offset(pos) + length, text: text})
}

// wrap puts text around a node.
func (b *breaker) wrap(n ast.Node, before, after string) {
	b.open(n.Pos(), before)
	b.shut(n.End(), after)
}

func becomes(from, to token.Token) string { return from.String() + " becomes " + to.String() }

// Visit implements [ast.Visitor].
func (b *breaker) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.GenDecl:
		if n.Tok == token.CONST || n.Tok == token.IMPORT {
			return nil
		}
	case *ast.ArrayType:
		return nil
	case *ast.BinaryExpr:
		b.binary(n)
	case *ast.UnaryExpr:
		b.unary(n)
	case *ast.IncDecStmt:
		b.step(n)
	case *ast.IfStmt:
		switch n.Cond.(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr:
		default:
			b.negate(n.Cond, "the condition is negated")
		}
	}
	return b
}

func (b *breaker) negate(n ast.Expr, what string) {
	if id := b.site(n.Pos(), what); id > 0 {
		b.wrap(n, "((", fmt.Sprintf(") != mutOn(%d))", id))
	}
}

func (b *breaker) binary(n *ast.BinaryExpr) {
	if to, ok := negations[n.Op]; ok {
		if id := b.site(n.OpPos, becomes(n.Op, to)); id > 0 {
			b.wrap(n, "((", fmt.Sprintf(") != mutOn(%d))", id))
		}
	}
	if to, ok := logical[n.Op]; ok {
		if id := b.site(n.OpPos, becomes(n.Op, to)); id > 0 {
			b.open(n.Pos(), fmt.Sprintf("%s(%d, ", helpers[n.Op], id))
			b.replace(n.OpPos, 2, ", func() bool { return (")
			b.shut(n.End(), ") })")
		}
		return
	}
	to, ok := boundaries[n.Op]
	if !ok {
		to, ok = arithmetic[n.Op]
	}
	if !ok || isString(b.info.TypeOf(n.X)) && arithmetic[n.Op] != 0 {
		return
	}
	of, ok := b.typeArgument(n, n.X, n.Y)
	if !ok {
		return
	}
	if id := b.site(n.OpPos, becomes(n.Op, to)); id > 0 {
		b.open(n.Pos(), fmt.Sprintf("%s%s(%d, ", helpers[n.Op], of, id))
		b.replace(n.OpPos, len(n.Op.String()), ", ")
		b.shut(n.End(), ")")
	}
}

// typeArgument returns the type of the operands of n, where the compiler cannot infer it.
func (b *breaker) typeArgument(n ast.Expr, operands ...ast.Expr) (argument string, ok bool) {
	for _, o := range operands {
		value := b.info.Types[o].Value
		if value == nil {
			return "", true
		}
		if _, fits := constant.Int64Val(constant.ToInt(value)); constant.ToInt(value).Kind() != constant.Int || !fits {
			return "", false
		}
	}
	t := b.info.TypeOf(n)
	if basic, ok := t.Underlying().(*types.Basic); ok && basic.Info()&types.IsBoolean != 0 { // a comparison
		t = b.info.TypeOf(operands[0])
	}
	switch t := types.Default(t).(type) {
	case *types.Basic:
		return "[" + t.Name() + "]", true
	case *types.Named: // such as time.Duration
		of := types.TypeString(t, func(p *types.Package) string { return p.Name() })
		return "[" + strings.TrimPrefix(of, b.file.Name.Name+".") + "]", true
	}
	return "", false
}

func (b *breaker) unary(n *ast.UnaryExpr) {
	switch n.Op {
	case token.NOT:
		b.negate(n, "! is left out")
	case token.SUB:
		of, ok := b.typeArgument(n, n.X)
		if !ok {
			return
		}
		if id := b.site(n.OpPos, "- is left out"); id > 0 {
			b.replace(n.OpPos, 1, fmt.Sprintf("mutMinus%s(%d, ", of, id))
			b.shut(n.End(), ")")
		}
	default: // &, * and the like say where a value is
	}
}

func (b *breaker) step(n *ast.IncDecStmt) {
	by, to := "1", token.DEC
	if n.Tok == token.DEC {
		by, to = "-1", token.INC
	}
	t, ok := b.info.TypeOf(n.X).(*types.Basic)
	if !ok {
		return
	}
	if id := b.site(n.TokPos, becomes(n.Tok, to)); id > 0 {
		b.replace(n.TokPos, 2, fmt.Sprintf(" += %s(mutStep(%d, %s))", t.Name(), id, by))
	}
}

// broken returns the file with its switches.
func (b *breaker) broken() []byte {
	slices.SortStableFunc(b.edits, func(x, y edit) int {
		shuts := func(e edit) int {
			if e.closes {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(shuts(x), shuts(y)), cmp.Compare(x.order, y.order))
	})
	var out bytes.Buffer
	at := 0
	for _, e := range b.edits {
		out.Write(b.source[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(b.source[at:])
	return out.Bytes()
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}
