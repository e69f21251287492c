package sqlstore

import (
	"errors"
	"reflect"
)

// Code returns the number of a database's error, from the method or field called name of
// the driver's error. It needs no import of the driver.
func Code(err error, name string) (code int64, ok bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if joined, is := err.(interface{ Unwrap() []error }); is {
			for _, one := range joined.Unwrap() {
				if code, ok = Code(one, name); ok {
					return code, true
				}
			}
		}
		v := reflect.ValueOf(err)
		if m := v.MethodByName(name); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
			v = m.Call(nil)[0]
		} else if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByName(name)
		}
		switch {
		case v.IsValid() && v.CanInt():
			return v.Int(), true
		case v.IsValid() && v.CanUint():
			return int64(v.Uint()), true //nolint:gosec // numbers of errors are small
		}
	}
	return 0, false
}
