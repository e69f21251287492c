package sqltx

import (
	"database/sql/driver"
	"io"
	"reflect"
)

// rows are those of a query of the handler. A driver may execute it while they are read
// or closed.
type rows struct {
	driver.Rows

	lent    *Lent
	release func() // the context of the query
}

// Close implements [driver.Rows].
func (r *rows) Close() (err error) {
	defer r.release()
	defer r.lent.end(&err)
	return r.Rows.Close()
}

// Next implements [driver.Rows].
func (r *rows) Next(to []driver.Value) (err error) {
	defer r.lent.end(&err)
	return r.Rows.Next(to)
}

// NextResultSet implements [driver.RowsNextResultSet].
func (r *rows) NextResultSet() (err error) {
	defer r.lent.end(&err)
	return as[driver.RowsNextResultSet](r).NextResultSet()
}

// The other methods that database/sql looks for.

func (r *rows) HasNextResultSet() bool { return as[driver.RowsNextResultSet](r).HasNextResultSet() }

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	return as[driver.RowsColumnTypeScanType](r).ColumnTypeScanType(i)
}

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	return as[driver.RowsColumnTypeDatabaseTypeName](r).ColumnTypeDatabaseTypeName(i)
}

func (r *rows) ColumnTypeLength(i int) (int64, bool) {
	return as[driver.RowsColumnTypeLength](r).ColumnTypeLength(i)
}

func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	return as[driver.RowsColumnTypeNullable](r).ColumnTypeNullable(i)
}

func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return as[driver.RowsColumnTypePrecisionScale](r).ColumnTypePrecisionScale(i)
}

// as returns the rows of the driver as a T, or plainRows if they lack its methods.
func as[T driver.Rows](r *rows) T {
	if has, ok := r.Rows.(T); ok {
		return has
	}
	return any(plainRows{r.Rows}).(T) //nolint:forcetypeassert // it has them all
}

// plainRows have the answers of database/sql for rows without the methods.
type plainRows struct{ driver.Rows }

func (plainRows) HasNextResultSet() bool                            { return false }
func (plainRows) NextResultSet() error                              { return io.EOF }
func (plainRows) ColumnTypeScanType(int) reflect.Type               { return reflect.TypeFor[any]() }
func (plainRows) ColumnTypeDatabaseTypeName(int) string             { return "" }
func (plainRows) ColumnTypeLength(int) (int64, bool)                { return 0, false }
func (plainRows) ColumnTypeNullable(int) (nullable, ok bool)        { return false, false }
func (plainRows) ColumnTypePrecisionScale(int) (_, _ int64, _ bool) { return 0, 0, false }
